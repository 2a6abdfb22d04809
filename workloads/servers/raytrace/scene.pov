// A field of boxes, balls and rings on a floor, made by a loop: many objects of several kinds, two of three mirror or refract
// the others, so that each thread's rays go all over the scene. Declare=SIDE=n on the command line makes n x n groups.
#version 3.7;
#ifndef (SIDE) #declare SIDE = 8; #end
global_settings { assumed_gamma 1 max_trace_level 4 }
camera { location <0, SIDE * 0.6, -SIDE * 0.9> look_at <0, 0, -SIDE * 0.1> angle 60 }
light_source { <-SIDE, SIDE * 2, -SIDE> color rgb 0.9 }
light_source { <SIDE, SIDE, -SIDE * 0.5> color rgb 0.4 }
plane { y, 0 pigment { checker color rgb 0.9 color rgb <0.3, 0.4, 0.3> } finish { reflection 0.1 } }

#declare Mirror = texture { pigment { color rgb <0.7, 0.7, 0.8> } finish { reflection 0.5 specular 0.6 } }
#declare Glass = texture { pigment { color rgbt <0.9, 0.95, 0.9, 0.8> } finish { reflection 0.1 specular 0.8 } }
#declare Chance = seed(1);
#declare Row = 0;
#while (Row < SIDE)
  #declare Column = 0;
  #while (Column < SIDE)
    union {
      box { <-0.3, 0, -0.3>, <0.3, 0.3 + rand(Chance) * 0.5, 0.3>
            texture { pigment { color rgb <rand(Chance), rand(Chance), rand(Chance)> } } }
      sphere { <0, 1.1, 0>, 0.15 + rand(Chance) * 0.15 texture { Mirror } }
      torus { 0.35, 0.06 translate <0, 1.1, 0> texture { Glass } interior { ior 1.3 } }
      rotate y * rand(Chance) * 90
      translate <Column - SIDE / 2 + 0.5, 0, Row - SIDE / 2 + 0.5>
    }
    #declare Column = Column + 1;
  #end
  #declare Row = Row + 1;
#end

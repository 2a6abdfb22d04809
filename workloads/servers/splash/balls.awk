# Writes a scene for Tachyon: side^2 balls over a floor, every third of them a mirror.
# Variables: side, and width and height of the picture.
function chance() { state = state * 16807 % 2147483647; return state / 2147483647 }
BEGIN {
  state = 1
  print "BEGIN_SCENE"
  print "RESOLUTION", width, height
  print "CAMERA ZOOM 1.0 ASPECTRATIO 1.0 ANTIALIASING 0 RAYDEPTH 5"
  print "  CENTER 0 3 -6 VIEWDIR 0 -0.45 1 UPDIR 0 1 0 END_CAMERA"
  print "LIGHT CENTER -5 9 -6 RAD 0.1 COLOR 0.9 0.9 0.9"
  print "PLANE CENTER 0 -1 0 NORMAL 0 1 0 TEXTURE AMBIENT 0.1 DIFFUSE 0.8 SPECULAR 0.1 OPACITY 1 COLOR 0.6 0.6 0.5 TEXFUNC 0"
  for (row = 0; row < side; row++)
    for (column = 0; column < side; column++) {
      x = (column + 0.5) / side * 6 - 3
      z = (row + 0.5) / side * 6 - 3
      printf "SPHERE CENTER %.4f %.4f %.4f RAD %.4f TEXTURE AMBIENT 0.1 DIFFUSE 0.6 SPECULAR %s OPACITY 1 COLOR %.2f %.2f %.2f TEXFUNC 0\n",
        x, (x * x + z * z) / 12 - 0.8 + chance(), z, (0.8 + chance()) * 2 / side, (row + column) % 3 ? "0" : "0.7",
        chance(), chance(), chance()
    }
  print "END_SCENE"
}

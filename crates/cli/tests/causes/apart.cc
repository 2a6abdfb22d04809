// Two loops, each over a field of its own: what one brings of a line is gone when the other comes.
#include <cstdio>
#include <vector>

struct Particle {
    double position[3];
    double spin;
    double velocity[3];
    double charge;
};

int main() {
    std::vector<Particle> all(20000);
    double charge = 0, spin = 0;
    for (int round = 0; round < 10; round++) {
        for (const Particle &one : all)
            charge += one.charge; // here
        for (const Particle &one : all)
            spin += one.spin;
        for (const Particle &one : all)
            spin += one.position[1];
        for (const Particle &one : all)
            charge += one.velocity[0];
    }
    std::printf("%f %f\n", charge, spin);
}

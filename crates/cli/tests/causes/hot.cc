// Particles of 64 bytes, of which one field is summed.
#include <cstdio>
#include <vector>

struct Particle {
    double mass;
    double position[3];
    double velocity[3];
    double charge;
};

int main() {
    std::vector<Particle> particles(20000);
    double sum = 0;
    for (int again = 0; again < 8; again++)
        for (const Particle &particle : particles)
            sum += particle.mass; // here
    std::printf("%f\n", sum);
}

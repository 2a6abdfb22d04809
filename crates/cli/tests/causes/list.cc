// A list whose nodes lie in memory in another order than in the list.
#include <cstdio>
#include <vector>

struct Node {
    Node *next;
    long value;
};

int main() {
    const unsigned count = 20000;
    std::vector<Node *> nodes(count);
    for (Node *&node : nodes)
        node = new Node{nullptr, 1}; // allocated
    unsigned at = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned next = (at + 7919u * (i % 13 + 1) + 1) % count;
        while (next != 0 && nodes[next]->next)
            next = (next + 1) % count;
        if (next == 0)
            break;
        nodes[at]->next = nodes[next];
        at = next;
    }
    long sum = 0;
    for (int again = 0; again < 20; again++)
        for (Node *node = nodes[0]; node; node = node->next)
            sum += node->value; // here
    std::printf("%ld\n", sum);
}

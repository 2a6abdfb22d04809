# Lines of text for programs that read some: words of a vocabulary, frequent ones far more often than others. From arithmetic alone, so that
# it is the same each time: awk's own random numbers differ from one awk to the next.
# Usage: awk -v lines=N -v words=N -f words.awk
function next_number() { state = (state * 16807) % 2147483647; return state / 2147483647 }
BEGIN {
  state = 20121
  for (line = 1; line <= lines; line++) {
    text = line % 97 * 7919 % 1000
    for (at = 0; at < 9; at++) {
      chance = next_number()
      # The third power makes a few words frequent.
      number = int(words * chance * chance * chance)
      text = text " " substr("abcdefghijklmnopqrstuvwxyz", number % 26 + 1, 1) substr("aeiou", number % 5 + 1, 1) number
    }
    print text
  }
}

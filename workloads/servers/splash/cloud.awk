# Writes a cloud: side^3 densities of a byte each, x fastest, as Tachyon reads a volume. In the C locale, where a character is a byte.
# Variable: side.
BEGIN {
  for (z = 0; z < side; z++)
    for (y = 0; y < side; y++)
      for (x = 0; x < side; x++)
        printf "%c", 1 + int(127 * (1 + sin(x * 9 / side) * sin(y * 7 / side) * cos(z * 8 / side)))
}

// A systolic array that multiplies two matrices: SIDE x SIDE cells, each a multiplier in three stages and a sum.
//
// Rows of A enter at the left, columns of B at the top, each a clock later than the one before; a cell hands both on. Matrices
// are of small numbers that the bench makes up. When a product is complete, the bench computes it once more in plain loops,
// compares, and begins the next one. One test prints one line.
`timescale 1ns/1ns

module cell_of_array #(parameter WIDTH = 16) (
  input  wire               clock,
  input  wire               clear,
  input  wire [WIDTH-1:0]   from_left,
  input  wire [WIDTH-1:0]   from_above,
  output reg  [WIDTH-1:0]   to_right,
  output reg  [WIDTH-1:0]   to_below,
  output reg  [2*WIDTH-1:0] sum
);
  // Four partial products, their sum in two steps: the stages of the multiplier.
  localparam HALF = WIDTH / 2;
  reg [WIDTH-1:0]   low_low, low_high, high_low, high_high;
  reg [2*WIDTH-1:0] middle, outer, product;

  always @(posedge clock)
    if (clear) begin
      to_right <= 0; to_below <= 0;
      low_low <= 0; low_high <= 0; high_low <= 0; high_high <= 0;
      middle <= 0; outer <= 0; product <= 0; sum <= 0;
    end else begin
      to_right  <= from_left;
      to_below  <= from_above;
      low_low   <= from_left[HALF-1:0] * from_above[HALF-1:0];
      low_high  <= from_left[HALF-1:0] * from_above[WIDTH-1:HALF];
      high_low  <= from_left[WIDTH-1:HALF] * from_above[HALF-1:0];
      high_high <= from_left[WIDTH-1:HALF] * from_above[WIDTH-1:HALF];
      middle    <= ({{WIDTH{1'b0}}, low_high} + {{WIDTH{1'b0}}, high_low}) << HALF;
      outer     <= {high_high, low_low};
      product   <= middle + outer;
      sum       <= sum + product;
    end
endmodule

module bench;
  parameter SIDE = 8;
  parameter PRODUCTS = 1;
  parameter SEED = 1;
  localparam WIDTH = 16;
  // Until the last number is in the last cell's sum: it enters after SIDE clocks, and goes SIDE cells right and SIDE down.
  localparam CLOCKS = 3 * SIDE + 4;

  reg clock = 0;
  reg clear = 1;
  reg [WIDTH-1:0] a [0:SIDE*SIDE-1];
  reg [WIDTH-1:0] b [0:SIDE*SIDE-1];
  reg [WIDTH-1:0] left [0:SIDE-1];
  reg [WIDTH-1:0] above [0:SIDE-1];
  wire [WIDTH-1:0] across [0:SIDE*(SIDE+1)-1];
  wire [WIDTH-1:0] down [0:SIDE*(SIDE+1)-1];
  wire [2*WIDTH-1:0] sums [0:SIDE*SIDE-1];

  genvar row, column;
  generate
    for (row = 0; row < SIDE; row = row + 1) begin : edges
      assign across[row*(SIDE+1)] = left[row];
      assign down[row] = above[row];
    end
    for (row = 0; row < SIDE; row = row + 1) begin : rows
      for (column = 0; column < SIDE; column = column + 1) begin : columns
        cell_of_array #(.WIDTH(WIDTH)) one (
          .clock(clock), .clear(clear),
          .from_left(across[row*(SIDE+1)+column]), .from_above(down[row*SIDE+column]),
          .to_right(across[row*(SIDE+1)+column+1]), .to_below(down[(row+1)*SIDE+column]),
          .sum(sums[row*SIDE+column]));
      end
    end
  endgenerate

  integer round, step, i, j, k, wrong, random;
  reg [2*WIDTH-1:0] expected;

  initial begin
    wrong = 0;
    random = SEED;
    for (round = 0; round < PRODUCTS; round = round + 1) begin
      for (i = 0; i < SIDE*SIDE; i = i + 1) begin
        a[i] = $random(random);
        b[i] = $random(random);
      end
      clear = 1;
      for (i = 0; i < SIDE; i = i + 1) begin left[i] = 0; above[i] = 0; end
      #1 clock = 1; #1 clock = 0;
      clear = 0;
      for (step = 0; step < CLOCKS; step = step + 1) begin
        // Row i begins i clocks late, and so does column i.
        for (i = 0; i < SIDE; i = i + 1) begin
          k = step - i;
          left[i]  = (k >= 0 && k < SIDE) ? a[i*SIDE+k] : 0;
          above[i] = (k >= 0 && k < SIDE) ? b[k*SIDE+i] : 0;
        end
        #1 clock = 1; #1 clock = 0;
      end
      for (i = 0; i < SIDE; i = i + 1)
        for (j = 0; j < SIDE; j = j + 1) begin
          expected = 0;
          for (k = 0; k < SIDE; k = k + 1) expected = expected + a[i*SIDE+k] * b[k*SIDE+j];
          if (sums[i*SIDE+j] !== expected) wrong = wrong + 1;
        end
    end
    $display("multipliers: %0d x %0d, %0d products, %0d wrong", SIDE, SIDE, PRODUCTS, wrong);
    $finish(0);
  end
endmodule

// A memory with a port for writing and one for reading, and a bench that goes through it by shift registers with feedback: in no
// order that a cache could guess, and each address but 0 once before one comes again.
//
// The port for writing puts a word made from the address and the number of the round; the port for reading follows LAG clocks
// behind and must get that word. The bench compares each one, and its test prints one line.
`timescale 1ns/1ns

module memory #(parameter BITS = 12, parameter WIDTH = 32) (
  input  wire             clock,
  input  wire [BITS-1:0]  write_at,
  input  wire [WIDTH-1:0] written,
  input  wire [BITS-1:0]  read_at,
  output reg  [WIDTH-1:0] got
);
  reg [WIDTH-1:0] words [0:(1<<BITS)-1];
  always @(posedge clock) begin
    words[write_at] <= written;
    got <= words[read_at];
  end
endmodule

// A shift register whose new bit is the parity of those in TAPS, and how often it has come round.
module walk #(parameter BITS = 12, parameter TAPS = 0, parameter START = 1) (
  input  wire            clock,
  input  wire            enable,
  output reg  [BITS-1:0] at,
  output reg  [15:0]     round
);
  wire [BITS-1:0] after = {at[BITS-2:0], ^(at & TAPS[BITS-1:0])};
  initial begin at = START; round = 0; end
  always @(posedge clock)
    if (enable) begin
      at <= after;
      if (after == START[BITS-1:0]) round <= round + 1;
    end
endmodule

module bench;
  parameter BITS = 12;     // of an address: 12 to 20
  parameter CLOCKS = 1000;
  parameter SEED = 1;      // where the walk begins; not 0
  localparam WIDTH = 32;
  localparam LAG = 64;
  // Two or four taps that make a register of so many bits go through all values but 0.
  localparam TAPS = BITS == 12 ? 'h00829 : BITS == 13 ? 'h0100d : BITS == 14 ? 'h02015 : BITS == 15 ? 'h06000 :
                    BITS == 16 ? 'h0d008 : BITS == 17 ? 'h12000 : BITS == 18 ? 'h20400 : BITS == 19 ? 'h40023 : 'h90000;

  reg clock = 0;
  reg following = 0;
  wire [BITS-1:0] write_at, read_at;
  wire [15:0] write_round, read_round;
  wire [WIDTH-1:0] got;

  // Two addresses of a round never make the same word, nor two rounds of an address.
  function [WIDTH-1:0] word(input [BITS-1:0] at, input [15:0] round);
    word = {round, at} ^ 32'h5bd1e995;
  endfunction

  walk #(.BITS(BITS), .TAPS(TAPS), .START(SEED)) ahead (.clock(clock), .enable(1'b1), .at(write_at), .round(write_round));
  walk #(.BITS(BITS), .TAPS(TAPS), .START(SEED)) behind (.clock(clock), .enable(following), .at(read_at), .round(read_round));
  memory #(.BITS(BITS), .WIDTH(WIDTH)) one (
    .clock(clock), .write_at(write_at), .written(word(write_at, write_round)), .read_at(read_at), .got(got));

  integer step, wrong;
  reg [WIDTH-1:0] expected;
  initial begin
    wrong = 0;
    for (step = 0; step < CLOCKS + LAG; step = step + 1) begin
      following = step >= LAG;
      expected = word(read_at, read_round);
      #1 clock = 1;
      #1 clock = 0;
      if (following && got !== expected) wrong = wrong + 1;
    end
    $display("ram: %0d words, %0d clocks, %0d rounds, %0d wrong", 1 << BITS, CLOCKS, read_round, wrong);
    $finish(0);
  end
endmodule

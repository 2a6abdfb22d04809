// The same in Go.
package main

import "os"

var data [100]int64

//go:noinline
func sum() (total int64) {
	for _, value := range data {
		total += value
	}
	return total
}

func main() {
	if sum() != 0 {
		os.Exit(1)
	}
}

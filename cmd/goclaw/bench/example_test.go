package bench_test

import (
	"fmt"

	"goclaw/cmd/goclaw/bench"
)

func ExampleReport_Text() {
	r := bench.Report{Machine: "linux/amd64", Build: "-trimpath=true", Figures: []bench.Figure{{
		Name: "Binary", Values: []bench.Value{{Value: 41.8, Unit: "MB"}}, Means: "The size of the one file that goclaw is.",
	}}}
	fmt.Print(r.Text())
	// Output:
	// goclaw bench on linux/amd64
	// build: -trimpath=true
	//
	//  1  Binary  41.8 MB
	//
	// What the lines mean
	//
	//  1  Binary
	//     means:    The size of the one file that goclaw is.
}

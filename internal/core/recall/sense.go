package recall

import (
	_ "embed"
	"encoding/binary"
	"math"
	"sort"
	"strings"
)

const (
	senseDims  = 256
	senseWords = 20_000
	senseName  = 16              // bytes of a stem, filled up with zeros
	senseRow   = 4 + senseDims/2 // bytes of a vector
)

// The built-in vectors are made by testdata/sense.py: the stems, sorted; for
// each of them the size of a step, a 32-bit float, and 4 bits for each dimension,
// the lower half of a byte first. A common word's vector is short, a telling
// one's long. What they are made of is in NOTICE.
//
//go:embed sense.bin
var senseData string

// Sense is about what a text means: the sum of its words' vectors, brought to
// the length 1. nil: it has no word that is known.
func Sense(terms []string) []float32 {
	often := map[string]float64{}
	var order []string // sums in one order are the same to the last bit
	for _, t := range terms {
		if often[t] == 0 {
			order = append(order, t)
		}
		often[t]++
	}
	var sum [senseDims]float64
	known := false
	for _, t := range order {
		row, ok := senseOf(t)
		if !ok {
			continue
		}
		known = true
		addSense(&sum, row, math.Sqrt(often[t]))
	}
	var square float64
	for _, x := range sum {
		square += x * x
	}
	if !known || square == 0 {
		return nil
	}
	out := make([]float32, senseDims)
	for i, x := range sum {
		out[i] = float32(x / math.Sqrt(square))
	}
	return out
}

// senseOf finds the row of a stem.
func senseOf(stem string) (row string, ok bool) {
	if len(stem) > senseName {
		return "", false
	}
	name := func(i int) string { return strings.TrimRight(senseData[i*senseName:(i+1)*senseName], "\x00") }
	i := sort.Search(senseWords, func(i int) bool { return name(i) >= stem })
	if i == senseWords || name(i) != stem {
		return "", false
	}
	at := senseWords*senseName + i*senseRow
	return senseData[at : at+senseRow], true
}

// addSense adds a row times a weight.
func addSense(sum *[senseDims]float64, row string, weight float64) {
	weight *= float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(row[:4]))))
	for i, two := range []byte(row[4:]) {
		sum[2*i] += weight * float64(int(two&15)-8)
		sum[2*i+1] += weight * float64(int(two>>4)-8)
	}
}

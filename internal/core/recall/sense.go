package recall

import (
	_ "embed"
	"encoding/binary"
	"math"
	"sort"
	"strings"
)

const (
	senseDims  = 250
	senseWords = 10_000
	senseName  = 16 // bytes of a stem, filled up with zeros
)

// The built-in vectors are made of WordNet 3.0 by testdata/sense.py: the stems,
// sorted; the step of each dimension, a 32-bit float; for each stem 4 bits for
// each dimension, the lower half of a byte first. WordNet's licence is in NOTICE.
//
//go:embed sense.bin
var senseData string

// Sense is about what a text means: the mean of its words' vectors, brought to
// the length 1. weigh says how much a term counts. nil: it has no word that is
// known.
func Sense(terms []string, weigh func(term string) float64) []float32 {
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
		addSense(&sum, row, weigh(t)*math.Sqrt(often[t]))
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
	rows := senseData[senseWords*senseName+4*senseDims:]
	return rows[i*senseDims/2 : (i+1)*senseDims/2], true
}

// addSense adds a row, brought to the length 1, times a weight.
func addSense(sum *[senseDims]float64, row string, weight float64) {
	var v [senseDims]float64
	var square float64
	for i := range v {
		four := row[i/2] >> (4 * (i % 2)) & 15
		v[i] = float64(int(four)-8) * senseStep(i)
		square += v[i] * v[i]
	}
	if square == 0 {
		return
	}
	for i, x := range v {
		sum[i] += weight * x / math.Sqrt(square)
	}
}

func senseStep(i int) float64 {
	at := senseWords*senseName + 4*i
	return float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(senseData[at : at+4]))))
}

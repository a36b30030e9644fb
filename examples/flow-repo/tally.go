// Command tally counts the words of its standard input.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	counts, err := count(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	report(os.Stdout, counts)
}

// count returns how often each word occurs. Case doesn't matter, nor do the
// signs around a word.
func count(r io.Reader) (map[string]int, error) {
	counts := map[string]int{}
	words := bufio.NewScanner(r)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		if word := strings.ToLower(strings.Trim(words.Text(), ".,;:!?()\"'")); word != "" {
			counts[word]++
		}
	}
	return counts, words.Err()
}

// report writes one line per word, in alphabetical order.
func report(w io.Writer, counts map[string]int) {
	words := make([]string, 0, len(counts))
	for word := range counts {
		words = append(words, word)
	}
	slices.Sort(words)
	for _, word := range words {
		fmt.Fprintf(w, "%6d %s\n", counts[word], word)
	}
}

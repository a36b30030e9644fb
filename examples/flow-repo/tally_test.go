package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	counts, err := count(strings.NewReader("The sea, the SEA! And a ship."))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	report(&out, counts)
	want := "     1 a\n     1 and\n     2 sea\n     1 ship\n     2 the\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

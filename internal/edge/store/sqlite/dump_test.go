package sqlite

import (
	"slices"
	"testing"

	"goclaw"
)

// TestDump shows every row of every table, with all of its columns.
func TestDump(t *testing.T) {
	s := openHere(t)
	ctx := t.Context()
	if err := acceptLong(ctx, s, "one"); err != nil {
		t.Fatal(err)
	}
	claimed, err := s.Claim(ctx, goclaw.ClaimRequest{Owner: "me", Now: 1, Lease: 1e9, Max: 1})
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %d, error %v", len(claimed), err)
	}
	err = s.Append(ctx, claimed[0].Run.Fence(), goclaw.Batch{Events: []goclaw.Event{{Kind: goclaw.EventPrompt}, {Seq: 1, Kind: goclaw.EventEnd}}})
	if err != nil {
		t.Fatal(err)
	}
	var dumped []string
	rows := map[string][]any{}
	err = s.Dump(ctx, func(table string, columns []string, values []any) error {
		if !slices.Contains(dumped, table) {
			dumped = append(dumped, table)
		}
		for i, c := range columns {
			rows[table+"."+c] = append(rows[table+"."+c], values[i])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"sessions", "processes", "runs", "events"}; !slices.Equal(dumped, want) {
		t.Errorf("tables %v, want %v", dumped, want)
	}
	if rows["runs.id"][0] != "one" || rows["runs.ordinal"][0] != int64(1) || rows["runs.cost_usd"][0] != nil || len(rows["events.data"]) != 2 {
		t.Errorf("rows %v", rows)
	}

	found, err := s.readerDB.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for found.Next() {
		var table string
		if err := found.Scan(&table); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(tables[:], table) {
			t.Errorf("table %s is never dumped", table)
		}
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.Dump(ctx, nil) == nil {
		t.Error("a closed store was dumped")
	}
}

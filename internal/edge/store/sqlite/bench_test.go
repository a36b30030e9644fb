package sqlite_test

import (
	"path/filepath"
	"testing"

	"goclaw/internal/edge/store/sqlite"
	"goclaw/internal/edge/store/storetest"
)

func BenchmarkRun(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) storetest.Store {
		s := openBench(b)
		b.Cleanup(func() { b.ReportMetric(float64(s.Commits())/float64(b.N), "commits/run") })
		return s
	})
}

func BenchmarkQueue(b *testing.B) {
	storetest.BenchQueue(b, func(b *testing.B) storetest.Store { return openBench(b) })
}

func BenchmarkReserve(b *testing.B) {
	storetest.BenchReserve(b, func(b *testing.B) storetest.Store { return openBench(b) })
}

func openBench(b *testing.B) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "goclaw.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

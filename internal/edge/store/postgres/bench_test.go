package postgres_test

import (
	"fmt"
	"testing"

	"goclaw/internal/edge/store/postgres"
	"goclaw/internal/edge/store/postgres/pgtest"
	"goclaw/internal/edge/store/storetest"
)

// The server of the benchmarks is the tests', which does not wait for the disk.

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

func openBench(b *testing.B) *postgres.Store {
	b.Helper()
	if server == nil {
		b.Skip(pgtest.ErrNoServer)
	}
	name := fmt.Sprintf("bench_%d", databases.Add(1))
	if err := server.CreateDatabase(b.Context(), name, template); err != nil {
		b.Fatal(err)
	}
	s, err := postgres.Open(b.Context(), server.URL(name), postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

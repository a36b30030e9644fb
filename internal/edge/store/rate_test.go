package store_test

import (
	"testing"

	"pgregory.net/rapid"

	"goclaw"
	"goclaw/internal/edge/store"
)

// TestBucket takes at random moments: what was refused can be taken exactly
// when it was said, and in no minute more is let through than the allowance
// and what had been saved up.
func TestBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := goclaw.RateRequest{
			RequestsPerMinute: rapid.IntRange(0, 30).Draw(t, "requests"), TokensPerMinute: rapid.IntRange(1, 9000).Draw(t, "tokens"),
			Now: goclaw.Millis(rapid.IntRange(1, 1_000_000).Draw(t, "begin")),
		}
		b := store.FullBucket(r)
		begin, requests, tokens := r.Now, 0, int64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			r.Tokens = int64(rapid.IntRange(0, r.TokensPerMinute).Draw(t, "need"))
			next, again := b.Take(r)
			if again != 0 {
				if again <= r.Now {
					t.Fatalf("at %d it says to ask again at %d", r.Now, again)
				}
				early := r
				early.Now = max(r.Now, again-2) // half a millionth is rounded away
				if _, again := b.Take(early); again == 0 {
					t.Fatalf("it can be taken at %d already", early.Now)
				}
				r.Now = again
				if next, again = b.Take(r); again != 0 {
					t.Fatalf("at %d, when it said to ask again, it says %d", r.Now, again)
				}
			}
			b = next
			requests++
			tokens += r.Tokens
			minutes := 1 + float64(r.Now-begin)/60_000 // the full bucket of the beginning is one
			if most := float64(r.RequestsPerMinute)*minutes + 1e-3; r.RequestsPerMinute > 0 && float64(requests) > most {
				t.Fatalf("%d requests in %f minutes", requests, minutes)
			}
			if most := float64(r.TokensPerMinute)*minutes + 1e-3; float64(tokens) > most {
				t.Fatalf("%d tokens in %f minutes", tokens, minutes)
			}
			r.Now += goclaw.Millis(rapid.IntRange(0, 9000).Draw(t, "ms"))
		}
	})
}

func TestBucketOfAnotherAllowance(t *testing.T) {
	r := goclaw.RateRequest{RequestsPerMinute: 10, TokensPerMinute: 1000, Tokens: 400, Now: 1}
	b, again := store.FullBucket(r).Take(r)
	if again != 0 || b.Requests != 9 || b.Tokens != 600 {
		t.Fatalf("bucket %+v, again %d", b, again)
	}
	// A smaller allowance holds less at once; none leaves the bucket alone.
	r.RequestsPerMinute, r.TokensPerMinute, r.Tokens = 0, 500, 100
	if b, again = b.Take(r); again != 0 || b.Requests != 9 || b.Tokens != 400 {
		t.Fatalf("bucket %+v, again %d", b, again)
	}
	r.RequestsPerMinute, r.TokensPerMinute = 0, 0
	if !store.Unbounded(r) {
		t.Error("no bound is a bound")
	}
	if b, again = b.Take(r); again != 0 || b.Requests != 9 || b.Tokens != 400 {
		t.Fatalf("bucket %+v, again %d", b, again)
	}
}

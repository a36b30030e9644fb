package storetest

import "testing"

// Run runs the suite; open gives each test a new, empty store and closes it
// when the test ends.
func Run(t *testing.T, open func(t *testing.T) Store) {
	tests := []struct {
		name string
		test func(*world)
	}{
		{"accept keeps every field", testAcceptFields},
		{"accept makes the session", testAcceptSession},
		{"accept refuses", testAcceptRefuses},
		{"accept once per key", testAcceptKey},
		{"accept coalesces", testAcceptCoalesce},
		{"accept within the parent's fence", testAcceptFence},
		{"accept within the limit of children", testAcceptChildren},
		{"cancel", testCancel},
		{"cancel cascades", testCancelCascade},

		{"claim starts a run", testClaimStarts},
		{"claim one run per session", testClaimSession},
		{"claim within the limit of workers", testClaimWorkers},
		{"claim withdrawn runs first", testClaimWithdrawn},
		{"claim only cancelled runs", testClaimOnlyCancelled},
		{"claim after the lease", testClaimLease},
		{"claim from the dead", testClaimDeadOwners},
		{"claim what was released", testClaimReleased},
		{"claim at most so many", testClaimMax},
		{"claim in order", testClaimOrder},
		{"heartbeat", testHeartbeat},

		{"append", testAppend},
		{"append all or nothing", testAppendAtomic},
		{"append fenced", testAppendFenced},
		{"append blobs", testBlobs},
		{"events keep every field", testEventFields},
		{"end", testEnd},
		{"end fenced", testEndFenced},
		{"end refuses", testEndRefuses},
		{"artifacts", testArtifacts},

		{"inbox", testInbox},
		{"inbox consumes once", testConsume},
		{"inbox group", testGroupOpen},
		{"tidy deletes", testTidyDelete},
		{"tidy archives", testTidyArchive},
		{"outbox", testOutbox},

		{"find a run", testFind},
		{"list runs", testRuns},
		{"counts", testCounts},
		{"history", testHistory},
		{"history after a reset", testHistoryReset},
		{"sessions", testSessions},
		{"nothing shared", testNothingShared},
		{"ended contexts and stores", testEnded},

		{"concurrent claims", testConcurrentClaims},
		{"concurrent acceptances", testConcurrentChildren},
		{"concurrent keys", testConcurrentKey},
		{"concurrent consumers", testConcurrentConsume},
		{"concurrent zombie", testConcurrentZombie},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.test(newWorld(t, open)) })
	}
}

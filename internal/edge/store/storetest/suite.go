package storetest

import "testing"

// Run runs the suite; open gives each test a new, empty store and closes it
// when the test ends.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, list := range [][]example{
		intakeExamples(), leasesExamples(), logExamples(), waitingExamples(),
		inboxExamples(), purseExamples(), catalogExamples(), racesExamples(), cronExamples(),
	} {
		for _, tt := range list {
			t.Run(tt.name, func(t *testing.T) { tt.test(newWorld(t, open)) })
		}
	}
}

// example is one test of the suite.
type example struct {
	name string
	test func(*world)
}

func intakeExamples() []example {
	return []example{
		{"accept keeps every field", testAcceptFields},
		{"accept makes the session", testAcceptSession},
		{"accept refuses", testAcceptRefuses},
		{"accept once per key", testAcceptKey},
		{"accept stores blobs", testAcceptBlobs},
		{"accept coalesces", testAcceptCoalesce},
		{"accept within the parent's fence", testAcceptFence},
		{"accept within the limit of children", testAcceptChildren},
		{"accept within the limit of the tree", testAcceptTree},
		{"cancel", testCancel},
		{"cancel cascades", testCancelCascade},
	}
}

func leasesExamples() []example {
	return []example{
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
		{"claim fairly", testClaimFair},
		{"claim from lanes in turn", testClaimRoundRobin},
		{"claim within the limits of lanes and agents", testClaimLimits},
		{"claim what wakes", testClaimWaiting},
		{"claim what wakes as the rest", testClaimWoken},
		{"claim turns that are left to others", testClaimTurnsBefore},
		{"claim tells who let go", testClaimTakenOver},
		{"queue", testQueue},
		{"heartbeat", testHeartbeat},
	}
}

func logExamples() []example {
	return []example{
		{"append", testAppend},
		{"append all or nothing", testAppendAtomic},
		{"append fenced", testAppendFenced},
		{"append blobs", testBlobs},
		{"events keep every field", testEventFields},
		{"end", testEnd},
		{"end fenced", testEndFenced},
		{"end refuses", testEndRefuses},
		{"end if nothing is pending", testEndIfQuiet},
		{"end gives back", testReturn},
		{"end leaves artifacts", testEndArtifacts},
		{"append leaves artifacts", testArtifacts},
		{"list artifacts", testArtifactsOf},
		{"recovery", testRecovery},
	}
}

func waitingExamples() []example {
	return []example{
		{"suspend", testSuspend},
		{"suspend unless woken", testSuspendWoken},
		{"suspend leaves artifacts", testSuspendArtifacts},
		{"suspend until the deadline", testSuspendDeadline},
		{"suspend for the caller", testSuspendForCaller},
		{"wake by the last of a group", testWakeTogether},
		{"end with all below", testEndCascade},
		{"suspend refuses", testSuspendRefuses},
		{"waiting holds no slot", testWaitingHoldsNoSlot},
		{"workers wake their parent", testWake},
		{"post", testPost},
		{"resume", testResume},
	}
}

func inboxExamples() []example {
	return []example{
		{"inbox", testInbox},
		{"inbox consumes once", testConsume},
		{"inbox group", testGroupOpen},
		{"inbox group of a worker", testGroupOfWorkers},
		{"inbox postpones and parks", testPostpone},
		{"inbox redirects", testRedirect},
		{"tidy deletes", testTidyDelete},
		{"tidy keeps what is parked", testTidyParked},
		{"tidy deletes what was read", testTidyRead},
		{"tidy archives", testTidyArchive},
		{"outbox", testOutbox},
		{"outbox parks", testParkedReplies},
	}
}

func purseExamples() []example {
	return []example{
		{"reserve", testReserve},
		{"reserve within every limit", testReserveLimits},
		{"reserve counts what was lost", testReserveLost},
		{"usage", testUsage},
		{"rate", testRate},
		{"pause", testPause},
	}
}

func catalogExamples() []example {
	return []example{
		{"find a run", testFind},
		{"list runs", testRuns},
		{"list runs of a tree", testRunsOfTree},
		{"counts", testCounts},
		{"history", testHistory},
		{"history after a reset", testHistoryReset},
		{"sessions", testSessions},
		{"nothing shared", testNothingShared},
		{"ended contexts and stores", testEnded},
	}
}

func racesExamples() []example {
	return []example{
		{"concurrent claims", testConcurrentClaims},
		{"concurrent acceptances", testConcurrentChildren},
		{"concurrent keys", testConcurrentKey},
		{"concurrent consumers", testConcurrentConsume},
		{"concurrent zombie", testConcurrentZombie},
		{"concurrent limits", testConcurrentLimits},
		{"concurrent reservations", testConcurrentReserve},
		{"concurrent rates", testConcurrentRate},
		{"concurrent posts", testConcurrentPost},
		{"concurrent senders", testConcurrentSenders},
		{"race of suspend and post", testRaceSuspendPost},
		{"race of suspend and a worker's end", testRaceSuspendEnd},
		{"race of the last workers", testRaceLastWorkers},
		{"race of end and post", testRaceEndPost},
		{"race of claim and cancel", testRaceClaimCancel},
		{"race of zombie and heir", testRaceZombie},
		{"race of unpark and dismiss", testRaceDecision},
	}
}

func cronExamples() []example {
	return []example{
		{"cron jobs", testCronJobs},
		{"cron jobs refuse", testCronRefuses},
		{"cron change by revision", testCronRevision},
		{"cron due", testCronDue},
		{"cron fires", testCronFires},
		{"cron fires a due time once", testCronOnce},
		{"cron skips", testCronSkips},
		{"cron fires by hand", testCronManual},
		{"cron fires once per key", testCronKey},
		{"cron refuses to overlap", testCronBusy},
		{"cron accepts as any run", testCronAccepts},
		{"cron removes a job", testCronRemoved},
		{"cron lists firings", testCronFirings},
		{"cron trims firings", testCronTrims},
		{"concurrent firers", testConcurrentFirers},
		{"concurrent firers of many jobs", testConcurrentJobs},
		{"concurrent firers of one session", testConcurrentQuiet},
		{"concurrent changes of a job", testConcurrentPut},
		{"race of firing and change", testRaceFirePut},
		{"race of firing and removal", testRaceFireRemove},
	}
}

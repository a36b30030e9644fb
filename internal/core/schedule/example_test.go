package schedule_test

import (
	"fmt"
	"time"

	"goclaw"
	"goclaw/internal/core/schedule"
)

// The clock goes from 02:00 to 03:00 in the night to 29 March.
func Example() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	times, err := schedule.Parse(goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: "30 2 * * *"}, berlin)
	if err != nil {
		panic(err)
	}
	for _, at := range times.Upcoming(time.Date(2026, 3, 27, 12, 0, 0, 0, berlin), 3) {
		fmt.Println(at)
	}
	_, err = schedule.Parse(goclaw.Schedule{Kind: goclaw.ScheduleCron, Expr: "0 24 * * *"}, berlin)
	fmt.Println(err)
	// Output:
	// 2026-03-28 02:30:00 +0100 CET
	// 2026-03-29 03:00:00 +0200 CEST
	// 2026-03-30 02:30:00 +0200 CEST
	// cron expression "0 24 * * *": hour "24": 24 is out of range; write 0 to 23 (midnight is 0)
}

package turn

import (
	"strings"
	"testing"
)

func TestHeartbeat(t *testing.T) {
	long := strings.Repeat("the cellar is wet; ", 20)
	for reply, want := range map[string]string{
		"HEARTBEAT_OK":                      "NO_REPLY",
		" **HEARTBEAT_OK**.\n":              "NO_REPLY",
		"":                                  "NO_REPLY",
		"Nothing is due. HEARTBEAT_OK":      "NO_REPLY",
		"HEARTBEAT_OK\n\nAll quiet.":        "NO_REPLY",
		"The cellar is wet.":                "The cellar is wet.",
		"Say HEARTBEAT_OK when all is well": "Say HEARTBEAT_OK when all is well",
		"HEARTBEAT_OK " + long:              strings.TrimSuffix(strings.TrimSpace(long), ";") + ";",
		"NO_REPLY":                          "NO_REPLY",
	} {
		if got := Heartbeat(reply); got != want {
			t.Errorf("Heartbeat(%q) = %q, want %q", reply, got, want)
		}
	}
}

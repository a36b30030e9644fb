package setup

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"goclaw"
)

// verdict is what a test call showed, in one line.
type verdict struct {
	works bool
	text  string
	next  int // what to propose: see mend
}

// The proposals of mend, by their places.
const (
	otherKey = iota
	otherModel
	otherAddress
	onceMore
)

// judge words what a call came to. What is no provider's failure is why the
// wizard ends.
func judge(err error, p Plan, v vendor) (verdict, error) {
	if err == nil {
		return verdict{works: true, text: p.Model + " answers."}, nil
	}
	var failed *goclaw.ProviderError
	if !errors.As(err, &failed) {
		return verdict{}, err
	}
	where := cmp.Or(hostOf(p.URL), v.host)
	said := clip(failed.Message)
	get := ""
	if v.keys != "" {
		get = ", or make a new one at " + v.keys
	}
	switch {
	case failed.Kind == "cancelled":
		return verdict{text: fmt.Sprintf("Too slow: %s did not answer in time; try again, or choose a smaller model.", where), next: onceMore}, nil
	case failed.Status == 0:
		return unreached(failed, where), nil
	case noCredit(failed):
		return verdict{text: fmt.Sprintf("No credit: the key is right, but %s wants money first (%s); add credit there, or use another key.", where, said), next: otherKey}, nil
	case failed.Status == http.StatusUnauthorized, failed.Kind == "authentication_error", failed.Kind == "invalid_api_key":
		if p.KeyFrom == KeyNone {
			return verdict{text: fmt.Sprintf("A key is missing: %s wants one (%s).", where, said), next: otherKey}, nil
		}
		return verdict{text: fmt.Sprintf("Wrong key: %s refuses it (%s); copy it once more%s.", where, said, get), next: otherKey}, nil
	case unknownModel(failed, p):
		return verdict{text: fmt.Sprintf("Unknown model: %s has no %s for this key (%s); choose another.", where, p.Model, said), next: otherModel}, nil
	case failed.Status == http.StatusForbidden:
		return verdict{text: fmt.Sprintf("Not allowed: %s knows the key and refuses it for this (%s); check its rights, or choose another model.", where, said), next: otherKey}, nil
	case failed.Status == http.StatusNotFound, failed.Status == http.StatusMethodNotAllowed, failed.Kind == "malformed",
		failed.Status >= 300 && failed.Status < 400:
		return verdict{text: fmt.Sprintf("Wrong address: what answers at %s does not speak this API (HTTP %d); check the URL, and whether /v1 belongs to it.", where, failed.Status), next: otherAddress}, nil
	case failed.Status == http.StatusTooManyRequests:
		return verdict{text: fmt.Sprintf("Too many requests: %s knows the key, but answers no more for now (%s); try again in a minute.", where, said), next: onceMore}, nil
	case failed.Status >= 500:
		return verdict{text: fmt.Sprintf("Out of order: %s can't answer now (HTTP %d, %s); try again later.", where, failed.Status, said), next: onceMore}, nil
	}
	return verdict{text: fmt.Sprintf("Refused: %s says %q (HTTP %d).", where, said, failed.Status), next: otherModel}, nil
}

// unreached is a call that no server answered, or not to the end.
func unreached(failed *goclaw.ProviderError, where string) verdict {
	var dns *net.DNSError
	switch {
	case errors.As(failed, &dns):
		return verdict{text: fmt.Sprintf("No network, or a wrong address: the name %s is not known; check the connection and the URL.", where), next: otherAddress}
	case errors.Is(failed, syscall.ECONNREFUSED):
		return verdict{text: fmt.Sprintf("Nothing answers at %s: the connection is refused; check the address, and that the server runs.", where), next: otherAddress}
	case errors.Is(failed, syscall.ENETUNREACH), errors.Is(failed, syscall.EHOSTUNREACH):
		return verdict{text: fmt.Sprintf("No network: %s can't be reached; check the connection.", where), next: onceMore}
	case failed.Kind == "malformed":
		return verdict{text: fmt.Sprintf("Wrong address: what answers at %s does not speak this API; check the URL.", where), next: otherAddress}
	}
	return verdict{text: fmt.Sprintf("No answer from %s (%s); check the connection and the URL.", where, clip(failed.Message)), next: onceMore}
}

func noCredit(e *goclaw.ProviderError) bool {
	said := strings.ToLower(e.Message)
	return e.Status == http.StatusPaymentRequired ||
		slices.Contains([]string{"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"}, e.Kind) ||
		strings.Contains(said, "credit balance") || strings.Contains(said, "insufficient credit")
}

// unknownModel tells a server that lacks the model from one that lacks the API:
// it names the model.
func unknownModel(e *goclaw.ProviderError, p Plan) bool {
	_, model, _ := strings.Cut(p.Model, "/")
	if e.Kind == "model_not_found" {
		return true
	}
	said := strings.ToLower(e.Message)
	return (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest) &&
		(strings.Contains(said, strings.ToLower(model)) || strings.Contains(said, "model"))
}

// hostOf is the host of an address, "" if there is none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// clip keeps a server's words to a line.
func clip(s string) string {
	const most = 160
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return strings.TrimSuffix(s, ".")
}

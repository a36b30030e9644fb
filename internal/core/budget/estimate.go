package budget

import "goclaw"

// What a request holds besides its text, in tokens.
const (
	perRequest = 16
	perMessage = 8  // role and separators; each part counts as one
	perTool    = 16 // what a schema is wrapped in

	// toolPreamble is what some providers add to the prompt, and bill, as soon
	// as there is a tool. The largest that is published has about 700 tokens.
	toolPreamble = 700
)

// Weigh counts the bytes of messages for EstimateAfter, dense ones twice.
//
// Half of what it counts bounds the tokens. English takes about four bytes a
// token, source code three, with the greediest tokenizers two and a half: half
// a token a byte is enough for words. It is not for what tokenizers have no
// words for: in hex, base64, digits and identifiers a token has one to two
// bytes, and so it has in some scripts. So digits, punctuation, all that is not
// ASCII, words with a digit and words of more than 20 letters count twice: one
// token a byte, which no byte-level tokenizer exceeds. That is a bound for
// what agents read and write, not for text made to break it: short words of
// random letters can cost more.
func Weigh(messages ...goclaw.Message) int {
	n := 0
	for _, m := range messages {
		n += 2 * perMessage
		for _, p := range m.Parts {
			n += 2*perMessage + weigh(p.Text)
			if p.Call != nil {
				n += weigh(p.Call.ID) + weigh(p.Call.Name) + weigh(p.Call.Arguments)
			}
			if p.Result != nil {
				n += weigh(p.Result.CallID) + weigh(p.Result.Name) + weigh(p.Result.Content)
			}
			// Encrypted: billed as the text within, which is shorter.
			n += len(p.Opaque)
		}
	}
	return n
}

// Estimate bounds the input tokens of a request whose like was not sent before.
// What Weigh says of its certainty holds for it.
func Estimate(req goclaw.ModelRequest) int64 {
	n := 2*perRequest + Weigh(req.Messages...)
	for _, b := range req.System {
		n += 2*perMessage + weigh(b.Text)
	}
	for _, t := range req.Tools {
		n += 2*perTool + weigh(t.Name) + weigh(t.Description) + weigh(string(t.Schema))
	}
	for _, s := range req.Stop {
		n += weigh(s)
	}
	if len(req.Tools) > 0 {
		n += 2 * toolPreamble
	}
	return half(n)
}

// EstimateAfter bounds the input tokens of a request that repeats the last one
// of the same run, which the provider counted as lastInput tokens, and adds
// newBytes as Weigh counts them: the last reply and all that came after it. A
// provider that counts nothing (lastInput 0) leaves only Estimate.
func EstimateAfter(lastInput int64, newBytes int) int64 {
	return lastInput + perRequest + half(newBytes)
}

func half(n int) int64 { return (int64(n) + 1) / 2 }

const longWord = 20

// weigh counts bytes, dense ones twice (see Weigh).
func weigh(s string) int {
	n, word, digits := 0, 0, false
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			word++
		case c >= '0' && c <= '9':
			word++
			digits = true
		default:
			n += wordWeight(word, digits)
			word, digits = 0, false
			if c == ' ' || c == '\t' {
				n++
			} else {
				n += 2
			}
		}
	}
	return n + wordWeight(word, digits)
}

func wordWeight(length int, digits bool) int {
	if digits || length > longWord {
		return 2 * length
	}
	return length
}

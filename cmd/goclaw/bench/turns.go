package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"time"

	"goclaw"
	"goclaw/internal/core/prompt"
	"goclaw/internal/edge/provider/anthropic"
)

const modelName = "claude-bench"

// turns measures what a turn costs over the bare call of the model.
func (b *bench) turns(ctx context.Context) ([]Figure, error) {
	g, err := b.gateway(ctx, `{"agents": {"defaults": {"model": "anthropic/`+modelName+`"}}}`)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	talk := goclaw.APIKey("main", "bench")
	p, err := g.api.Context(ctx, goclaw.ContextQuery{Session: talk})
	if err != nil {
		return nil, err
	}
	bare := anthropic.New(anthropic.Options{APIKey: "bench", BaseURL: b.models.url})
	defer bare.CloseIdleConnections()
	var over, whole, call sample
	req := goclaw.ModelRequest{Model: modelName, System: prompt.Render(p), Tools: p.Tools}
	var busy time.Duration
	for i := range b.size.turns + 1 {
		text := fmt.Sprintf("This is message %d.", i)
		turn, reply, err := b.chat(ctx, g, talk, text)
		if err != nil {
			return nil, err
		}
		run := goclaw.Run{Session: talk, Trigger: goclaw.TriggerUser}
		req.Messages = append(req.Messages, prompt.Envelope(prompt.Turn{Run: run, Text: text, Now: time.Now()}))
		began := time.Now()
		if _, err := bare.Stream(ctx, req, nil); err != nil {
			return nil, err
		}
		alone := time.Since(began)
		req.Messages = append(req.Messages, goclaw.Text(goclaw.RoleAssistant, reply))
		if i == 0 {
			busy = g.worked()
			continue // both open their connections
		}
		over, whole, call = append(over, turn-alone), append(whole, turn), append(call, alone)
	}
	busy = g.worked() - busy
	commits, err := b.commitsPerTurn(ctx, g)
	if err != nil {
		return nil, err
	}
	fsync, err := b.syncTime(ctx)
	if err != nil {
		return nil, err
	}
	first, last := over[:len(over)/10], over[len(over)*9/10:]
	bound := 5*fsync + time.Millisecond
	return []Figure{{
		ID: "turn", Name: "Turn overhead over the model", Values: append(over.tail(), ms("first tenth's p50", first.median()), ms("last tenth's p50", last.median())),
		Means: "What goclaw adds to the model's own time in one turn of a conversation: the API call, the durable record, the prompt, the transcript.",
		How: fmt.Sprintf("%d turns, one after another, of one session that grows, through POST /v1/chat/completions of a running gateway; after each, the same "+
			"request straight to the same model server (a process of its own that answers at once) through the same provider code. The differences of the pairs.", b.size.turns),
		Aim:       &Aim{Label: "p50", Bound: ms("", bound).Value, Words: fmt.Sprintf("≤ 5 fsyncs + 1 ms = %s ms", number(ms("", bound).Value))},
		Elsewhere: elsewhere("picoclaw 24 ms, OpenClaw 190 ms"),
	}, {
		ID: "turn.parts", Name: "  the turn, the bare call", Values: []Value{ms("turn p50", whole.median()), ms("call p50", call.median()), work(busy, b.size.turns)},
		Means: "What the line above is the difference of, and the processor time that the gateway takes per turn, which says less about the noise of the machine.",
		How:   "As above; processor time from /proc/PID/stat.",
	}, commits}, nil
}

// chat is one turn through the OpenAI-compatible API.
func (b *bench) chat(ctx context.Context, g *gateway, key goclaw.SessionKey, text string) (time.Duration, string, error) {
	body, err := json.Marshal(map[string]any{"model": "goclaw", "messages": []any{map[string]string{"role": "user", "content": text}}})
	if err != nil {
		return 0, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+apiToken)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GoClaw-Session", key.String())
	began := time.Now()
	res, err := b.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	took := time.Since(began)
	if err != nil || res.StatusCode != http.StatusOK {
		return 0, "", fmt.Errorf("turn: HTTP %d: %s (%w)", res.StatusCode, raw, err)
	}
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Choices) == 0 {
		return 0, "", fmt.Errorf("turn: unreadable answer %s (%w)", raw, err)
	}
	return took, answer.Choices[0].Message.Content, nil
}

// commitsPerTurn counts in the log what one turn writes.
func (b *bench) commitsPerTurn(ctx context.Context, g *gateway) (_ Figure, err error) {
	log, err := followWAL(filepath.Join(g.home, "goclaw.db"))
	if err != nil {
		return Figure{}, err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	least, most, before := math.MaxInt, 0, 0
	for i := range b.size.counted {
		if _, _, err := b.chat(ctx, g, goclaw.APIKey("main", fmt.Sprintf("counted-%d", i)), "Count this."); err != nil {
			return Figure{}, err
		}
		after, err := log.count()
		if err != nil {
			return Figure{}, err
		}
		least, most, before = min(least, after-before), max(most, after-before), after
	}
	return Figure{
		ID: "turn.commits", Name: "Commits per turn", Values: []Value{count("least", float64(least), ""), count("most", float64(most), "")},
		Means: "How many durable transactions one turn without tools makes. The renewal of the lease, every 5 s, may add one.",
		How:   fmt.Sprintf("Commit frames in the database's write-ahead log before and after each of %d turns in new sessions.", b.size.counted),
		Aim:   &Aim{Label: "least", Bound: 5, Words: "≤ 5"},
	}, nil
}

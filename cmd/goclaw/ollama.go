package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// ollamaPatience is how long a local Ollama may take to say which models it
// has. Where none runs the connection is refused at once.
const ollamaPatience = 300 * time.Millisecond

// askOllama lists the chat models of the OpenAI-compatible API at base.
func askOllama(base string) (names []string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), ollamaPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return nil, false
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := direct.Do(req)
	if err != nil {
		return nil, false
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if res.StatusCode != http.StatusOK || json.NewDecoder(http.MaxBytesReader(nil, res.Body, 1<<20)).Decode(&list) != nil {
		return nil, false
	}
	for _, m := range list.Data {
		if !strings.Contains(m.ID, "embed") {
			names = append(names, m.ID)
		}
	}
	return names, true
}

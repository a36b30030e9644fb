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

// listPatience is the same for any server, when a person waits for the list.
const listPatience = 10 * time.Second

// askOllama lists the chat models of the OpenAI-compatible API at base.
func askOllama(base string) (names []string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), ollamaPatience)
	defer cancel()
	return listModels(ctx, base, "")
}

// listModels asks an OpenAI-compatible server for its chat models.
func listModels(ctx context.Context, base, key string) (names []string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/models", nil)
	if err != nil {
		return nil, false
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	direct := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key is for this server
	}
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

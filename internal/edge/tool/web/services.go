package web

import (
	"encoding/json"
	"errors"
	"strings"

	"golang.org/x/net/html"
)

const (
	braveURL  = "https://api.search.brave.com"
	bravePath = "/res/v1/web/search"
)

var errForm = errors.New("the service's answer can't be read: it is not the JSON that was expected")

func braveHits(body []byte) ([]hit, error) {
	var answer struct {
		Web struct {
			Results []struct {
				Title, URL, Description, Age string
				PageAge                      string `json:"page_age"`
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errForm
	}
	hits := make([]hit, len(answer.Web.Results))
	for i, r := range answer.Web.Results {
		age := r.Age
		if age == "" {
			age, _, _ = strings.Cut(r.PageAge, "T")
		}
		hits[i] = hit{plain(r.Title), r.URL, plain(r.Description), age}
	}
	return hits, nil
}

func searxngHits(body []byte) ([]hit, error) {
	var answer struct {
		Results *[]struct {
			Title, URL, Content string
			PublishedDate       string
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Results == nil {
		return nil, errForm
	}
	hits := make([]hit, len(*answer.Results))
	for i, r := range *answer.Results {
		age, _, _ := strings.Cut(r.PublishedDate, "T")
		hits[i] = hit{r.Title, r.URL, r.Content, age}
	}
	return hits, nil
}

// plain is text without the tags by which a service marks the words it found.
func plain(s string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.Write(z.Text())
		}
	}
}

package openapi_test

import (
	"fmt"

	"goclaw"
	"goclaw/internal/edge/web/openapi"
)

func ExampleDocument() {
	doc, err := openapi.Document(info(), []openapi.Route{{Pattern: "GET /runs", Operation: openapi.Operation{
		ID: "listRuns", Tag: "runs", Summary: "Runs, newest first",
		Answers: []openapi.Answer{{Status: 200, About: "the runs", Body: []goclaw.Run{}}},
	}}})
	fmt.Println(doc.Paths["/runs"]["get"].Responses["200"].Content["application/json"].Schema.Items.Ref, err)
	// Output: #/components/schemas/Run <nil>
}

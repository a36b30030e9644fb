package web_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"

	"goclaw"
	"goclaw/internal/edge/client"
	"goclaw/internal/edge/web"
)

func ExampleNew() {
	srv := httptest.NewServer(web.New(web.Options{Token: "secret", Backend: &fake{}}))
	defer srv.Close()

	ctx := context.Background()
	c := client.New(srv.URL, "secret", srv.Client())
	receipt, err := c.Receive(ctx, goclaw.Inbound{Session: goclaw.MainKey("main"), Text: "hi"})
	if err != nil {
		log.Fatal(err)
	}
	out, err := c.Await(ctx, receipt.Run.ID, false)
	fmt.Println(out.Reply, err)
	// Output: hello <nil>
}

// Command model serves a script as a model server, until it is killed:
//
//	go run .ci/clients/model.go SCRIPT.json
//
// Its first line of output is its address.
package main

import (
	"fmt"
	"log"
	"os"

	"goclaw/internal/edge/provider/providertest"
)

func main() {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	script, err := providertest.ParseScript(raw)
	if err != nil {
		log.Fatal(err)
	}
	s := providertest.New(script)
	url, err := s.Start()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(url)
	select {}
}

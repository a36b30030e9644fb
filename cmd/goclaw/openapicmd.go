package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"goclaw/internal/edge/web"
)

func (c *cli) openapiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the OpenAPI 3.1 document of the HTTP API", Args: no,
		Long: "Prints the OpenAPI 3.1 document of the HTTP API, as JSON: the one that a gateway\nserves at /api/openapi.json.",
		RunE: func(*cobra.Command, []string) error {
			doc, err := web.Document(version)
			if err != nil {
				return err
			}
			enc := json.NewEncoder(c.Stdout)
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			return enc.Encode(doc)
		},
	}
}

package telemetry

import "net/http"

// SetClient makes e send by hc.
func SetClient(e *Exporter, hc *http.Client) { e.sender.client = hc }

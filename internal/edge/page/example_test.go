package page_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"goclaw/internal/edge/page"
)

func ExampleHandler() {
	w := httptest.NewRecorder()
	page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}

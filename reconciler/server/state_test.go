package server

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A backup is sent completely. If it fails midway, the client gets an error and not a shorter
// backup.
func TestFailedBackupIsNotAShorterResponse(t *testing.T) {
	for name, test := range map[string]struct {
		export func(io.Writer) error
		code   int
		says   string
	}{
		"whole":   {func(w io.Writer) error { _, err := io.WriteString(w, "all of it"); return err }, http.StatusOK, "all of it"},
		"nothing": {func(io.Writer) error { return errors.New("torn") }, http.StatusInternalServerError, "torn"},
		"half": {func(w io.Writer) error {
			io.WriteString(w, strings.Repeat("half\n", 10_000))
			return errors.New("torn")
		}, http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(StateHandler(test.export))
			defer web.Close()
			resp, err := http.Get(web.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if resp.StatusCode != test.code || !strings.Contains(string(text), test.says) || (err != nil) != (name == "half") {
				t.Errorf("answered %d %q, %v", resp.StatusCode, text, err)
			}
		})
	}
}

package daemon

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// The Kubernetes libraries log at the level debug, with a verbosity of up to 4; errors are always
// logged.
func TestKlogHandler(t *testing.T) {
	for level, want := range map[slog.Level]string{
		slog.LevelDebug: "DEBUG v0 DEBUG v2 DEBUG v4 ERROR broken",
		slog.LevelInfo:  "ERROR broken",
	} {
		var out strings.Builder
		log := logr.FromSlogHandler(klogHandler{slog.NewTextHandler(&out, &slog.HandlerOptions{
			Level: level,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
					return a
				}
				return slog.Attr{}
			},
		})}).WithName("leaderelection").WithValues("lease", "gitfleet")
		log.Info("v0")
		log.V(2).Info("v2")
		log.V(4).Info("v4")
		log.V(5).Info("v5")
		log.Error(errors.New("denied"), "broken")
		if got := strings.Join(strings.Fields(strings.NewReplacer("level=", "", "msg=", "").Replace(out.String())), " "); got != want {
			t.Errorf("at %s: logged %q, want %q", level, got, want)
		}
	}
}

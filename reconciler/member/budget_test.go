package member

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/reconciler/member/apply"
	"github.com/gitfleet/gitfleet/reconciler/member/connection"
	"github.com/gitfleet/gitfleet/reconciler/protocol"
)

// A member that exceeds its budget is named with the reason, and tried again ever more rarely.
func TestMemberOverBudgetIsTriedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		metrics := NewMetrics()
		a := New(Config{
			Name: "east", Metrics: metrics, Fleet: "prod", Log: slog.New(slog.DiscardHandler), Encoder: apply.NewEncoder("prod", "url"),
			Report: func(o protocol.Observation) {
				tries = append(tries, time.Now())
				if n := metrics.OverBudget.Value("east"); int(n) != len(tries) {
					t.Errorf("counted %v of %d times", n, len(tries))
				}
				if c, ok := o.(protocol.ClusterSeen); !ok || c.Healthy || c.Error != connection.GivenUp(connection.Exceeded(7, "pages")).Error() {
					t.Errorf("told %+v", o)
				}
			},
			Connect: func(context.Context) (*rest.Config, error) { return nil, connection.Exceeded(7, "pages") },
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		a.Run(ctx)
		if n := len(tries); n < 14 || n > 22 {
			t.Errorf("tried %d times in two hours", n)
		}
	})
}

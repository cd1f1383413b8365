package fleet

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gitfleet/gitfleet/test/checkout"
)

// build builds the programs that run the clusters, if necessary.
func build(ctx context.Context, o Options) (string, error) {
	defer announce(o.Output, "fleet: building the control planes; minutes the first time, then seconds")()
	return checkout.ControlPlane(ctx, o.programs()...)
}

// programs returns the programs of the clusters.
func (o Options) programs() []string {
	programs := []string{"etcd", "kube-apiserver"}
	if o.Controllers != "" && o.Controllers != "none" {
		programs = append(programs, "kube-controller-manager")
	}
	if o.Scheduler {
		programs = append(programs, "kube-scheduler")
	}
	return programs
}

// announce prints text if the next step takes more than a few seconds, and then how long it has
// taken. The caller calls done at the end.
func announce(out io.Writer, text string) (done func()) {
	began, stop, stopped := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		wait := 3 * time.Second
		for {
			select {
			case <-stop:
				return
			case <-time.After(wait):
				fmt.Fprintf(out, "%s (%s)\n", text, time.Since(began).Round(time.Second))
				wait = 30 * time.Second
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

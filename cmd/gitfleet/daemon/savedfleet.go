package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gitfleet/gitfleet/reconciler/ledger"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// The time between two tries to read the ledger of replicas doubles from the first to the
// last.
const firstLedgerRetry, lastLedgerRetry = 250 * time.Millisecond, 5 * time.Second

// savedFleet reads the fleet from the ledger. While the cluster that has the ledger does not
// answer, or refuses to, it tries again until ctx is done, and the server answers on the
// listener that the daemon is starting. The log says why; the answer does not, since it is for
// everybody.
func savedFleet(ctx context.Context, store ledger.Archive, srv *server.Server, listener net.Listener, log *slog.Logger) (ledger.Fleet, error) {
	fleet, err := store.Fleet()
	tcp, ok := listener.(*net.TCPListener)
	if !ok || !mayRecover(err) {
		return fleet, err
	}
	log.Warn("ledger not read; trying again until it is", "err", err)
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- srv.ServeStarting(serving, tcp, "waiting for the ledger in the management cluster")
	}()
	for wait := firstLedgerRetry; mayRecover(err); wait = min(2*wait, lastLedgerRetry) {
		select {
		case <-time.After(wait):
		case served := <-ended: // also when ctx is done
			stop()
			return ledger.Fleet{}, errors.Join(served, ctx.Err())
		}
		before := err.Error()
		if fleet, err = store.Fleet(); mayRecover(err) && err.Error() != before {
			log.Warn("ledger still not read; trying again until it is", "err", err)
		}
	}
	stop()
	return fleet, errors.Join(err, <-ended)
}

// mayRecover reports whether an error is one of a cluster that may pass: it cannot be reached,
// its answer does not come or is cut off, or it refuses the request. A ledger that is damaged is
// another error. A net.Error counts only as a timeout: those of files, such as a state directory
// that cannot be read, are a net.Error too.
func mayRecover(err error) bool {
	var request *url.Error
	var connection *net.OpError
	var network net.Error
	var status apierrors.APIStatus
	return errors.As(err, &request) || errors.As(err, &connection) || errors.As(err, &status) ||
		errors.As(err, &network) && network.Timeout() || errors.Is(err, io.ErrUnexpectedEOF)
}

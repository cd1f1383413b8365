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

	"github.com/gitfleet/gitfleet/reconciler/protocol"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// The delay between two attempts to read the ledger of replicas doubles from the first to the
// last value.
const firstLedgerRetry, lastLedgerRetry = 250 * time.Millisecond, 5 * time.Second

// savedFleet reads the fleet from the ledger with read. If the cluster with the ledger does not respond,
// or refuses the request, it retries until ctx is done; meanwhile the server responds on the
// listener that the daemon is starting. The log has the reason; the response does not, since
// everybody may read it.
func savedFleet(ctx context.Context, read func(context.Context) (protocol.Fleet, error), srv *server.Server, listener net.Listener, log *slog.Logger) (protocol.Fleet, error) {
	fleet, err := read(ctx)
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
		case served := <-ended: // also if ctx is done
			stop()
			return protocol.Fleet{}, errors.Join(served, ctx.Err())
		}
		before := err.Error()
		if fleet, err = read(ctx); mayRecover(err) && err.Error() != before {
			log.Warn("ledger still not read; trying again until it is", "err", err)
		}
	}
	stop()
	return fleet, errors.Join(err, <-ended)
}

// mayRecover reports whether an error may be temporary: the cluster cannot be reached, its
// response is missing or incomplete, or it refuses the request. A damaged ledger is not such an
// error. A net.Error counts only if it is a timeout, since errors of files, such as an
// unreadable state directory, also implement net.Error.
func mayRecover(err error) bool {
	var request *url.Error
	var connection *net.OpError
	var network net.Error
	var status apierrors.APIStatus
	return errors.As(err, &request) || errors.As(err, &connection) || errors.As(err, &status) ||
		errors.As(err, &network) && network.Timeout() || errors.Is(err, io.ErrUnexpectedEOF)
}

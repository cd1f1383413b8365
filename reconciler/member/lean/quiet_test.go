package lean_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gitfleet/gitfleet/reconciler/member/lean"
)

// What comes in the way of a renewal puts it off, and not for longer than it lasts:
// the next may come soon.
func TestRenewalsAreNotSpentOnNothing(t *testing.T) {
	const renew = 10 * time.Second
	tests := map[string]struct {
		refused int // the dials that are
		meet    func(s *inside)
		dials   int
		within  time.Duration
	}{
		"nothing in the way": {0, func(s *inside) { s.follow("/large") }, 2, 2 * renew},
		"a request under way": {0, func(s *inside) {
			s.follow("/large")
			asked := s.get("/little")
			time.Sleep(5 * renew)
			asked.Body.Close()
		}, 2, 2 * renew},
		"nothing followed": {0, func(s *inside) {
			io.Copy(io.Discard, s.get("/large/once").Body) //nolint:errcheck // how it ends does not matter
			time.Sleep(5 * renew)
			s.follow("/little")
		}, 2, 2 * renew},
		"a dial refused": {1, func(s *inside) { s.follow("/large") }, 3, 10 * renew},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newInside(t, lean.Config{Renew: renew}, func(_ context.Context, nth int) (net.Conn, error) {
					if nth > 1 && nth <= 1+test.refused {
						return nil, errors.New("nobody there")
					}
					return nil, nil
				})
				test.meet(s)
				from := time.Now()
				synctest.Wait()
				time.Sleep(test.within)
				synctest.Wait()
				if n := len(s.dialed); n != test.dials {
					t.Errorf("after %s there were %d dials, want %d", time.Since(from), n, test.dials)
				}
				time.Sleep(20 * renew)
				if n := len(s.dialed); n != test.dials {
					t.Errorf("renewed again: %d dials, want %d", n, test.dials)
				}
			})
		})
	}
}

// Once a transport is closed nothing that it has begun goes on: neither a connection
// in the making, whoever it is for, nor one that has come to be.
func TestNothingOutlivesAClosedTransport(t *testing.T) {
	hang := func(ctx context.Context) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	silent := func(context.Context) (net.Conn, error) { // takes all, and says nothing
		here, there := net.Pipe()
		go io.Copy(io.Discard, there) //nolint:errcheck // until it is closed
		return here, nil
	}
	tests := map[string]struct {
		nth  int // the dial that leads elsewhere
		dial func(context.Context) (net.Conn, error)
	}{
		"a renewal being dialled":       {2, hang},
		"a renewal that is not greeted": {2, silent},
		"a dial nobody waits for":       {1, hang},
		"a server that does not greet":  {1, silent},
		"all is well":                   {0, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newInside(t, lean.Config{Renew: 10 * time.Second, Idle: 90 * time.Second}, func(ctx context.Context, nth int) (net.Conn, error) {
					if nth == test.nth {
						return test.dial(ctx)
					}
					return nil, nil
				})
				if test.nth == 1 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if _, err := s.RoundTrip(requestTo(t, ctx, "/")); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				} else {
					body := s.follow("/large")
					time.Sleep(25 * time.Second)
					body.Close()
				}
				synctest.Wait()
				s.Transport.Close()
				synctest.Wait()
				if n := s.open.Load(); n != 0 {
					t.Errorf("%d connections are left", n)
				}
				dials := len(s.dialed)
				if _, err := s.RoundTrip(requestTo(t, t.Context(), "/")); err == nil || errors.Is(err, lean.ErrCrowded) || len(s.dialed) != dials {
					t.Errorf("asked afterwards: %v, %d dials more", err, len(s.dialed)-dials)
				}
			})
		})
	}
}

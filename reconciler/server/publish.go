package server

import (
	"time"

	"github.com/gitfleet/gitfleet/reconciler/status"
)

// Publish makes a report the newest, and wakes clients that wait for it. It never blocks on a
// client.
func (s *Server) Publish(r *status.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report, s.at = r, time.Now()
	s.number++
	close(s.next)
	s.next = make(chan struct{})
}

// newest returns the report, its number, and a channel that is closed when there is a newer
// one.
func (s *Server) newest() (*status.Report, uint64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report, s.number, s.next
}

// age is the age of the newest report.
func (s *Server) age() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.at)
}

// reportToExport returns the newest report for metrics; nil if there is none, or if another replica may lead.
func (s *Server) reportToExport() *status.Report {
	r, _, _ := s.newest()
	if certain := s.leader.certain; certain != nil && !certain() {
		return nil
	}
	return r
}

package gitsource

import (
	"errors"
	"time"
)

// A Status is what can be said of a Repo at one moment. It holds no secrets.
type Status struct {
	// URL and Ref are what is followed.
	URL, Ref string
	// Head is the commit last handed to head; empty if there was none yet.
	Head string
	// LastPoll is when the remote was last asked, LastSuccess when it last
	// gave an answer that could be used.
	LastPoll, LastSuccess time.Time
	// NextPoll is when it will be asked again if nobody nudges.
	NextPoll time.Time
	// Failures counts polls that failed since the last success.
	Failures int
	// Error is why, on one line; empty after a success.
	Error string
}

// Status may be called at any time.
func (r *Repo) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// recordPoll records how a poll ended and logs a change of state, once.
func (r *Repo) recordPoll(now time.Time, err error) {
	r.mu.Lock()
	before := r.status
	s := &r.status
	s.LastPoll = now
	var bad *CommitError
	if err == nil || errors.As(err, &bad) {
		r.failures = 0 // the remote works: it need not be spared
	} else {
		r.failures++
	}
	if err == nil {
		s.LastSuccess, s.Failures, s.Error = now, 0, ""
	} else {
		s.Failures++
		s.Error = redact(err.Error())
	}
	after := *s
	r.mu.Unlock()
	log := r.cfg.Logger.With("url", after.URL, "ref", after.Ref)
	switch {
	case err != nil && before.Error != after.Error:
		log.Warn("cannot read the repository", "head", after.Head, "err", after.Error)
	case err == nil && before.Failures > 0:
		log.Info("the repository can be read again", "failures", before.Failures)
	}
}

func (r *Repo) noteHead(c Commit) {
	r.mu.Lock()
	r.status.Head = c.Hash
	r.mu.Unlock()
	r.cfg.Logger.Info("new commit", "commit", c.Hash, "subject", c.Subject)
}

// wish returns how long the remote asked to be left alone.
func wish(err error) time.Duration {
	var refused *RemoteError
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	return 0
}

package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An Event is one request in the audit log of a cluster. Unlike Counts it has the user agent,
// which identifies a daemon in another process.
type Event struct {
	Time      time.Time `json:"requestReceivedTimestamp"`
	Stage     string    `json:"stage"` // "ResponseComplete"; "ResponseStarted" for a watch, which may still be open
	Verb      string    `json:"verb"`  // get, list, watch, create, update, patch, delete, deletecollection
	URI       string    `json:"requestURI"`
	UserAgent string    `json:"userAgent"`
	// Impersonated is the user whom the request impersonates; its name is empty if it does not.
	Impersonated struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s %d (%s)", e.Verb, e.URI, e.Response.Code, e.UserAgent)
}

// An auditLog is what was read of the audit log of a cluster so far.
type auditLog struct {
	read   int64 // bytes
	events []Event
}

// Audit returns the requests that a cluster received since a time, except those of the API server
// to itself, in the order of their responses. It needs Options.Audit. An event may appear a moment
// after its response. Each event is read once.
func (f *Fleet) Audit(name string, since time.Time) ([]Event, error) {
	f.auditMu.Lock()
	defer f.auditMu.Unlock()
	log := f.audit[name]
	if log == nil {
		log = &auditLog{}
		if f.audit == nil {
			f.audit = map[string]*auditLog{}
		}
		f.audit[name] = log
	}
	if err := log.readOn(filepath.Join(f.dir, "logs", name+"-audit.log")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no audit log of %s; does fleet.Options ask for one? %w", name, err)
	} else if err != nil {
		return nil, err
	}
	var events []Event
	for _, e := range log.events {
		if !e.Time.Before(since) {
			events = append(events, e)
		}
	}
	return events, nil
}

// readOn reads the events that were added to the file.
func (l *auditLog) readOn(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(l.read, io.SeekStart); err != nil {
		return err
	}
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			return nil // or a line that is being written
		}
		if err != nil {
			return err
		}
		var event Event
		if err := json.Unmarshal(line, &event); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		l.read += int64(len(line))
		l.events = append(l.events, event)
	}
}

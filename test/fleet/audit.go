package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
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
	Object    struct {
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

// Audit returns all requests to the cluster since the fleet started, except those of the API
// server to itself, in the order of their responses. It needs Options.Audit. An event may appear
// a moment after its response.
func (f *Fleet) Audit(name string) ([]Event, error) {
	file, err := os.Open(filepath.Join(f.dir, "logs", name+"-audit.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no audit log of %s; does fleet.Options ask for one? %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var events []Event
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return events, nil // the end, or a line that is being written
		}
		var event Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		events = append(events, event)
	}
}

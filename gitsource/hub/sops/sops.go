// Package sops decrypts files that SOPS has encrypted.
//
// Decrypt returns the text of a YAML or JSON file with its values in place of the encrypted ones, each on the line that it
// was on, and without what SOPS has added. The keys are asked for the key of the file only, so that this package reads no
// files and sends no requests.
package sops

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Keys have the keys of the configuration.
type Keys interface {
	// DataKey returns the key of a file, which is encrypted for each of some recipients. The error is ErrNoKey if no key of
	// the configuration is one of a recipient's.
	DataKey(file string, recipients []Recipient) ([]byte, error)
	// Version changes whenever the keys do.
	Version() string
}

// ErrNoKey says that no key of the configuration is one of a recipient's.
var ErrNoKey = errors.New("no key of the configuration decrypts it")

// A Recipient is somebody for whom the key of a file is encrypted.
type Recipient struct {
	// Kind is the name of the list in the metadata, such as age, pgp or kms.
	Kind string
	// Fields are those of the recipient, without the encrypted key, such as recipient, fp or arn.
	Fields map[string]string
	// Context is the encryption context of AWS.
	Context map[string]string
	// Encrypted is the encrypted key.
	Encrypted string
}

// nameFields are the fields that name a recipient, by kind. A kind that is not listed is not known.
var nameFields = map[string][]string{
	"age": {"recipient"}, "pgp": {"fp"}, "kms": {"arn"}, "gcp_kms": {"resource_id"}, "hckms": {"key_id"},
	"azure_kv": {"vault_url", "name", "version"}, "hc_vault": {"vault_address", "engine_path", "key_name"},
}

// Name names the recipient in a message.
func (r Recipient) Name() string {
	var parts []string
	for _, field := range nameFields[r.Kind] {
		parts = append(parts, r.Fields[field])
	}
	return r.Kind + " " + strings.Join(parts, "/")
}

// A File is a decrypted file.
type File struct {
	// Text is the plain text, with as many lines as the file.
	Text []byte
	// Values are the values that were encrypted, as text.
	Values []string
	// Key stands for the key of the file: what is hashed with it cannot be guessed from the hash.
	Key [sha256.Size]byte
}

// mark is in every file with an encrypted value.
var mark = []byte("ENC[AES256_GCM,data:")

// IsEncrypted reports whether a file may have been encrypted with SOPS.
func IsEncrypted(data []byte) bool {
	return bytes.Contains(data, mark) && bytes.Contains(data, []byte("sops")) && bytes.Contains(data, []byte("lastmodified"))
}

// Decrypt decrypts a file. Documents with the same metadata were encrypted together, and each other one by itself. Documents
// without metadata stay as they are. The error says why nothing is decrypted.
func Decrypt(name string, data []byte, keys Keys) (file *File, err error) {
	defer func() {
		if recover() != nil { // a panic of the parser on strange input must not end the daemon
			file, err = nil, errors.New("it is not valid YAML")
		}
	}()
	if path.Ext(name) == ".env" {
		return decryptDotenv(name, data, keys)
	}
	documents, err := parse(data)
	if err != nil {
		return nil, err
	}
	out := &File{}
	var edits []edit
	var all []byte
	tried := 0
	for len(documents) > 0 {
		first, n := documents[0], 1
		for n < len(documents) && documents[n].mac() == first.mac() {
			n++
		}
		group := documents[:n]
		documents = documents[n:]
		if first.metadata == nil {
			continue
		}
		d, recipients, err := newDecrypter(name, first.metadata, keys)
		if err != nil {
			return nil, err
		}
		if tried += recipients; tried > maxTried {
			return nil, fmt.Errorf("its documents are encrypted separately, for more than %d recipients together; split the file", maxTried)
		}
		for _, doc := range group {
			if err := d.value(doc.root, nil, true); err != nil {
				return nil, err
			}
			d.edits = append(d.edits, edit{node: doc.key, metadata: doc.metadata})
		}
		if err := d.checkMAC(); err != nil {
			return nil, err
		}
		edits, out.Values = append(edits, d.edits...), append(out.Values, d.values...)
		all = append(all, d.key...)
	}
	if len(edits) == 0 {
		return nil, errors.New("it has encrypted values and no metadata of SOPS under sops")
	}
	out.Key = keyOf(all)
	if out.Text, err = rewrite(data, edits, path.Ext(name) == ".json" || isJSON(data)); err != nil {
		return nil, err
	}
	return out, nil
}

// A document is one document of a file.
type document struct {
	root *yaml.Node
	// key and metadata are the key sops and its value; nil if there are none.
	key, metadata *yaml.Node
}

// mac tells documents apart that were not encrypted together.
func (d document) mac() string {
	if d.metadata == nil {
		return ""
	}
	return text(field(d.metadata, "mac"))
}

func parse(data []byte) ([]document, error) {
	var all []document
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, errors.New("it is not valid YAML") // the parser's message may quote a value
		}
		if len(n.Content) == 0 {
			continue
		}
		d := document{root: n.Content[0]}
		if d.root.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(d.root.Content); i += 2 {
				if d.root.Content[i].Value == "sops" && d.root.Content[i+1].Kind == yaml.MappingNode {
					d.key, d.metadata = d.root.Content[i], d.root.Content[i+1]
				}
			}
		}
		all = append(all, d)
	}
}

func isJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) }

// field returns a field of a mapping; nil if it has none.
func field(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// recipientsOf returns those that the metadata of SOPS, the value of the field sops, lists.
func recipientsOf(metadata *yaml.Node) ([]Recipient, error) {
	from := metadata
	if groups := field(metadata, "key_groups"); groups != nil && len(groups.Content) > 0 {
		if len(groups.Content) > 1 {
			return nil, errors.New("its key is split over several key groups, which is not supported; encrypt it for one group")
		}
		from = groups.Content[0]
	}
	var all []Recipient
	for kind := range nameFields {
		list := field(from, kind)
		if list == nil {
			continue
		}
		for _, n := range list.Content {
			r := Recipient{Kind: kind, Fields: map[string]string{}, Context: map[string]string{}, Encrypted: text(field(n, "enc"))}
			for i := 0; i+1 < len(n.Content); i += 2 {
				if name := n.Content[i].Value; name != "enc" {
					r.Fields[name] = text(n.Content[i+1])
				}
			}
			if context := field(n, "context"); context != nil {
				for i := 0; i+1 < len(context.Content); i += 2 {
					r.Context[context.Content[i].Value] = text(context.Content[i+1])
				}
			}
			all = append(all, r)
		}
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("its metadata names nobody for whom it is encrypted")
	case len(all) > maxRecipients:
		return nil, fmt.Errorf("it is encrypted for more than %d recipients", maxRecipients)
	}
	slices.SortStableFunc(all, func(x, y Recipient) int { return strings.Compare(x.Name(), y.Name()) })
	for _, r := range all {
		if len(r.Encrypted) > maxSealed || len(r.Name()) > maxName {
			return nil, errors.New("the name or the encrypted key of a recipient is longer than SOPS writes it")
		}
	}
	return all, nil
}

// What a file may ask of the keys: anybody who can commit a file decides how often they are tried.
const (
	maxRecipients = 100      // of what was encrypted together
	maxTried      = 1000     // of all that was encrypted separately in a file
	maxSealed     = 16 << 10 // bytes of the encrypted key of one recipient
	maxName       = 2 << 10
	maxNamed      = 10 // recipients in a message
)

// names lists recipients in a message.
func names(all []Recipient) string {
	var out []string
	for _, r := range all[:min(len(all), maxNamed)] {
		out = append(out, r.Name())
	}
	if more := len(all) - maxNamed; more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// dataKey asks for the key of a file.
func dataKey(name string, recipients []Recipient, keys Keys) ([]byte, error) {
	key, err := keys.DataKey(name, recipients)
	if err != nil {
		return nil, fmt.Errorf("it is encrypted for %s: %w", names(recipients), err)
	}
	if len(key) != 32 {
		return nil, fmt.Errorf("it is encrypted for %s: the decrypted key has %d bytes instead of 32", names(recipients), len(key))
	}
	return key, nil
}

// keyOf returns what stands for the keys of a file.
func keyOf(keys []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte("gitfleet: hashes of decrypted objects\x00"), keys...))
}

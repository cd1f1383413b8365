package sops

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a file may ask of the keys: anybody who can commit a file decides how often they are tried.
const (
	maxRecipients = 100      // of what was encrypted together
	maxTried      = 1000     // of all that was encrypted separately in a file
	maxSealed     = 16 << 10 // bytes of the encrypted key of one recipient
	maxName       = 2 << 10
	maxNamed      = 10 // recipients in a message
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

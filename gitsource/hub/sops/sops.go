// Package sops decrypts files that SOPS has encrypted.
//
// Decrypt returns the text of a YAML or JSON file with its values in place of the encrypted ones, each on the line that it
// was on, and without what SOPS has added. The keys are asked for the key of the file only, so that this package reads no
// files and sends no requests.
package sops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"

	"go.yaml.in/yaml/v3"
)

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

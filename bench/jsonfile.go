package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// jsonFile is the file of -json.
type jsonFile struct{ file *os.File }

// createJSON opens the file, so that a path that cannot be written is found
// before the run. What is in it stays until write.
func createJSON(path string) (*jsonFile, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("bench: -json %q: %w", path, err)
	}
	return &jsonFile{file: f}, nil
}

// write replaces what is in the file by the report, and closes it.
func (j *jsonFile) write(report any) (err error) {
	defer func() {
		if e := j.file.Close(); err == nil && e != nil {
			err = fmt.Errorf("bench: -json: %w", e)
		}
	}()
	// A pipe or a device has no end to cut off.
	if info, err := j.file.Stat(); err == nil && info.Mode().IsRegular() {
		if err := j.file.Truncate(0); err != nil {
			return fmt.Errorf("bench: -json: %w", err)
		}
	}
	return writeJSON(j.file, report)
}

// writeJSON writes a report as people can read it.
func writeJSON(w io.Writer, report any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(report); err != nil {
		return fmt.Errorf("bench: -json: %w", err)
	}
	return nil
}

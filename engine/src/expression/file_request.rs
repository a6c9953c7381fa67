//! A request for a file beside the spec: for its text, its bytes, or the list of the files in a folder.

/// The start of the names of requests for bytes.
const BYTES: &str = "base64:";

/// A request for a file beside the spec. Its name is the key of the answer in documents and plan files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRequest<'a> {
    /// The text of the file with this path. The name is the path.
    Text(&'a str),
    /// The bytes of the file with this path, in base64. The name is `base64:` and the path.
    Bytes(&'a str),
    /// The paths of the files in this folder, one a line. The name is the path with `/` at its end.
    Listing(&'a str),
}

impl<'a> FileRequest<'a> {
    /// Returns the request that has this name.
    pub fn of_name(name: &'a str) -> Self {
        match name.strip_prefix(BYTES) {
            Some(path) => Self::Bytes(path),
            None if name.ends_with('/') => Self::Listing(name),
            None => Self::Text(name),
        }
    }

    /// Returns the name of the request; none for a text whose path is the name of another kind of request.
    pub fn name(self) -> Option<String> {
        match self {
            Self::Text(path) => (Self::of_name(path) == self).then(|| path.to_owned()),
            Self::Bytes(path) => Some(format!("{BYTES}{path}")),
            Self::Listing(folder) => {
                let folder = folder.trim_end_matches('/');
                Some(format!("{}/", if folder.is_empty() { "." } else { folder }))
            }
        }
    }

    /// Returns the path of the file or folder.
    pub fn path(self) -> &'a str {
        let (Self::Text(path) | Self::Bytes(path) | Self::Listing(path)) = self;
        path
    }

    /// Returns the same request for another path.
    pub fn with_path(self, path: &str) -> FileRequest<'_> {
        match self {
            Self::Text(_) => FileRequest::Text(path),
            Self::Bytes(_) => FileRequest::Bytes(path),
            Self::Listing(_) => FileRequest::Listing(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FileRequest::{self, Bytes, Listing, Text};

    #[test]
    fn a_name_gives_its_request_back() {
        for (request, name) in
            [(Text("a/b.txt"), "a/b.txt"), (Bytes("a.zip"), "base64:a.zip"), (Listing("a"), "a/")]
        {
            assert_eq!(request.name().as_deref(), Some(name));
            let read = FileRequest::of_name(name);
            assert_eq!(read.path().trim_end_matches('/'), request.path());
            assert_eq!(read.name().as_deref(), Some(name));
        }
        assert_eq!(Listing("").name().as_deref(), Some("./"));
        for path in ["a/", "base64:a"] {
            assert_eq!(Text(path).name(), None, "{path}");
        }
    }
}

//! The end of an object in a text, and its members, by brackets and strings alone.

use std::ops::Range;

use memchr::memchr2;

/// A member of an object, not of one inside of it: where in the object's text its name, in quotes, and its value stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Member {
    name: (u32, u32),
    value: (u32, u32),
}

impl Member {
    /// Where the name stands in an object, with its quotes.
    pub fn name(&self) -> Range<usize> {
        self.name.0 as usize..self.name.1 as usize
    }

    /// Where the value stands in an object, with blanks around it; nowhere if there is none.
    pub fn value(&self) -> Range<usize> {
        self.value.0 as usize..self.value.1 as usize
    }
}

/// Finds the members of one object after the other.
#[cfg(feature = "kafka")]
#[derive(Default)]
pub struct Scanner {
    brackets: Brackets,
}

#[cfg(feature = "kafka")]
impl Scanner {
    /// The members of a text that is one object, with nothing around it; none if it is something else.
    pub fn members(&mut self, text: &[u8]) -> Option<&[Member]> {
        self.brackets.begin();
        let is_object = self.brackets.pass(text) == Some(text.len());
        is_object.then_some(&self.brackets.members)
    }
}

/// Follows brackets and strings to the end of an object.
#[derive(Default)]
pub struct Brackets {
    pub depth: usize,
    pub deepest: usize,
    /// How many brackets are opened and how many commas there are.
    pub values: usize,
    pub in_string: bool,
    escaped: bool,
    /// How many bytes were passed before.
    passed: usize,
    /// The members of the object itself, whether a string is the name of the next one, and where it begins.
    pub members: Vec<Member>,
    expects_name: bool,
    name_start: usize,
}

impl Brackets {
    /// Another object begins.
    pub fn begin(&mut self) {
        let mut members = std::mem::take(&mut self.members);
        members.clear();
        *self = Self { members, ..Self::default() };
    }

    /// Passes some text; where the object ends in it, if it does. Text that begins with anything
    /// but `{` has no object.
    pub fn pass(&mut self, text: &[u8]) -> Option<usize> {
        let mut next = 0;
        while let Some(&byte) = text.get(next) {
            let at = next;
            next += 1;
            if self.in_string {
                if std::mem::take(&mut self.escaped) {
                    continue;
                }
                let Some(length) = memchr2(b'"', b'\\', &text[at..]) else { break };
                next = at + length + 1;
                self.escaped = text[at + length] == b'\\';
                self.in_string = self.escaped;
                if !self.in_string && self.depth == 1 && self.expects_name {
                    self.end_name(at + length);
                }
                continue;
            }
            match byte {
                b'{' | b'[' if self.depth > 0 || byte == b'{' => {
                    self.expects_name |= self.depth == 0;
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                    self.values += 1;
                }
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' if self.depth == 1 => {
                    self.end_value(at);
                    return Some(at + 1);
                }
                b'"' if self.depth > 0 => {
                    self.in_string = true;
                    if self.depth == 1 {
                        self.name_start = self.passed + at;
                    }
                }
                _ if self.depth == 0 || byte == b']' => return None,
                b',' => {
                    self.values += 1;
                    if self.depth == 1 {
                        self.end_value(at);
                        self.expects_name = true;
                    }
                }
                b':' if self.depth == 1 => self.begin_value(at),
                _ => {}
            }
        }
        self.passed += text.len();
        None
    }

    fn end_name(&mut self, at: usize) {
        let name = (self.name_start as u32, (self.passed + at + 1) as u32);
        self.members.push(Member { name, value: (0, 0) });
        self.expects_name = false;
    }

    fn begin_value(&mut self, at: usize) {
        let start = (self.passed + at + 1) as u32;
        if let Some(member) = self.members.last_mut().filter(|member| member.value.0 == 0) {
            member.value = (start, start);
        }
    }

    fn end_value(&mut self, at: usize) {
        let end = (self.passed + at) as u32;
        if let Some(member) = self.members.last_mut().filter(|member| member.value.0 > 0) {
            member.value.1 = member.value.1.max(end);
        }
    }
}

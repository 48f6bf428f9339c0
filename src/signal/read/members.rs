//! The members of a structured field (RFC 9651), a list or a dictionary, without copies of what is not needed.

use std::{borrow::Cow, fmt};

use sfv::{
    BareItemFromInput as Bare, KeyRef, Parser,
    visitor::{
        DictionaryVisitor, EntryVisitor, InnerListVisitor, ItemVisitor, ListVisitor, Never, ParameterVisitor,
    },
};

/// One member, with those of its parameters that were asked for.
#[derive(Debug, Default)]
pub struct Member<'f> {
    /// In a dictionary.
    pub key: &'f str,
    /// A string or token.
    pub name: Option<Cow<'f, str>>,
    /// An integer that is not negative.
    pub number: Option<u64>,
    pub numbers: [Option<u64>; 2],
    pub partition: Option<Vec<u8>>,
}

/// The members of a list. `None`: it is none, or one of the parameters `asked` for is not what it must be. A malformed
/// field is ignored whole.
pub fn list<'f>(field: &'f str, asked: [&'static str; 2]) -> Option<Vec<Member<'f>>> {
    let mut members = Members { list: Vec::new(), asked };
    Parser::new(field).parse_list_with_visitor(&mut members).ok()?;
    Some(members.list)
}

/// The same of a dictionary.
pub fn dictionary(field: &str) -> Option<Vec<Member<'_>>> {
    let mut members = Members { list: Vec::new(), asked: [""; 2] };
    Parser::new(field).parse_dictionary_with_visitor(&mut members).ok()?;
    Some(members.list)
}

struct Members<'f> {
    list: Vec<Member<'f>>,
    asked: [&'static str; 2],
}

impl<'f> Members<'f> {
    fn next(&mut self, key: &'f str) -> Result<One<'_, 'f>, Malformed> {
        self.list.push(Member { key, ..Member::default() });
        self.list.last_mut().map(|member| One { member, asked: self.asked }).ok_or(Malformed)
    }
}

impl<'f> ListVisitor<'f> for &mut Members<'f> {
    type Out = ();
    type Error = Malformed;

    fn entry(&mut self) -> Result<impl EntryVisitor<'f>, Malformed> {
        self.next("")
    }

    fn finish(self) -> Result<(), Malformed> {
        Ok(())
    }
}

impl<'f> DictionaryVisitor<'f> for &mut Members<'f> {
    type Out = ();
    type Error = Malformed;

    fn entry(&mut self, key: &'f KeyRef) -> Result<impl EntryVisitor<'f>, Malformed> {
        self.next(key.as_str())
    }

    fn finish(self) -> Result<(), Malformed> {
        Ok(())
    }
}

struct One<'m, 'f> {
    member: &'m mut Member<'f>,
    asked: [&'static str; 2],
}

impl<'f> EntryVisitor<'f> for One<'_, 'f> {
    type Error = Malformed;

    fn item(self) -> Result<impl ItemVisitor<'f>, Malformed> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'f>, Malformed> {
        Err::<Never, _>(Malformed)
    }
}

impl<'f> ItemVisitor<'f> for One<'_, 'f> {
    type Out = ();
    type Error = Malformed;

    fn bare_item(self, item: Bare<'f>) -> Result<impl ParameterVisitor<'f, Out = ()>, Malformed> {
        match item {
            Bare::String(Cow::Borrowed(name)) => self.member.name = Some(Cow::Borrowed(name.as_str())),
            Bare::String(Cow::Owned(name)) => self.member.name = Some(Cow::Owned(name.as_str().to_owned())),
            Bare::Token(name) => self.member.name = Some(Cow::Borrowed(name.as_str())),
            item => self.member.number = whole(&item).ok(),
        }
        Ok(self)
    }
}

impl<'f> ParameterVisitor<'f> for One<'_, 'f> {
    type Out = ();
    type Error = Malformed;

    fn parameter(&mut self, key: &'f KeyRef, value: Bare<'f>) -> Result<(), Malformed> {
        if let Some(at) = self.asked.iter().position(|asked| *asked == key.as_str()) {
            self.member.numbers[at] = Some(whole(&value)?);
        } else if let ("pk", Bare::ByteSequence(partition)) = (key.as_str(), value) {
            self.member.partition = Some(partition);
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Integers here have at most fifteen digits, so that a float holds them.
fn whole(item: &Bare<'_>) -> Result<u64, Malformed> {
    match item {
        Bare::Integer(number) => u64::try_from(i64::from(*number)).map_err(|_| Malformed),
        _ => Err(Malformed),
    }
}

#[derive(Debug)]
struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a field of this kind")
    }
}

impl std::error::Error for Malformed {}
